SELECT w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, w_country, carriers, year,
    sum(january) AS january, sum(february) AS february, sum(december) AS december,
    sum(january / w_warehouse_sq_ft) AS january_per_sq_ft, sum(january_net) AS january_net
FROM (
    SELECT w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, w_country,
        concat('DIAMOND', ',', 'AIRBORNE') AS carriers, d_year AS year,
        sum(CASE WHEN d_moy = 1 THEN ws_sales_price * ws_quantity ELSE 0 END) AS january,
        sum(CASE WHEN d_moy = 2 THEN ws_sales_price * ws_quantity ELSE 0 END) AS february,
        sum(CASE WHEN d_moy = 12 THEN ws_sales_price * ws_quantity ELSE 0 END) AS december,
        sum(CASE WHEN d_moy = 1 THEN ws_net_paid_inc_tax * ws_quantity ELSE 0 END) AS january_net
    FROM web_sales, warehouse, date_dim, time_dim, ship_mode
    WHERE ws_warehouse_sk = w_warehouse_sk AND ws_sold_date_sk = d_date_sk
        AND ws_sold_time_sk = t_time_sk AND ws_ship_mode_sk = sm_ship_mode_sk AND d_year = 2002
        AND t_time BETWEEN 49530 AND 49530 + 28800 AND sm_carrier IN ('DIAMOND', 'AIRBORNE')
    GROUP BY w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, w_country, d_year
    UNION ALL
    SELECT w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, w_country,
        concat('DIAMOND', ',', 'AIRBORNE'), d_year,
        sum(CASE WHEN d_moy = 1 THEN cs_ext_sales_price * cs_quantity ELSE 0 END),
        sum(CASE WHEN d_moy = 2 THEN cs_ext_sales_price * cs_quantity ELSE 0 END),
        sum(CASE WHEN d_moy = 12 THEN cs_ext_sales_price * cs_quantity ELSE 0 END),
        sum(CASE WHEN d_moy = 1 THEN cs_net_paid_inc_ship_tax * cs_quantity ELSE 0 END)
    FROM catalog_sales, warehouse, date_dim, time_dim, ship_mode
    WHERE cs_warehouse_sk = w_warehouse_sk AND cs_sold_date_sk = d_date_sk
        AND cs_sold_time_sk = t_time_sk AND cs_ship_mode_sk = sm_ship_mode_sk AND d_year = 2002
        AND t_time BETWEEN 49530 AND 49530 + 28800 AND sm_carrier IN ('DIAMOND', 'AIRBORNE')
    GROUP BY w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, w_country, d_year
) AS shipped
GROUP BY w_warehouse_name, w_warehouse_sq_ft, w_city, w_county, w_state, w_country, carriers, year
ORDER BY w_warehouse_name
LIMIT 100
