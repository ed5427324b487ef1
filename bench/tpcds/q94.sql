SELECT count(DISTINCT ws_order_number) AS orders, sum(ws_ext_ship_cost) AS shipping,
    sum(ws_net_profit) AS profit
FROM web_sales AS sale, date_dim, customer_address, web_site
WHERE d_date BETWEEN DATE '1999-05-01' AND DATE '1999-05-01' + INTERVAL 60 DAYS
    AND sale.ws_ship_date_sk = d_date_sk AND sale.ws_ship_addr_sk = ca_address_sk
    AND ca_state = 'TX' AND sale.ws_web_site_sk = web_site_sk AND web_company_name = 'pri'
    AND EXISTS (
        SELECT * FROM web_sales AS other
        WHERE sale.ws_order_number = other.ws_order_number
            AND sale.ws_warehouse_sk <> other.ws_warehouse_sk
    )
    AND NOT EXISTS (SELECT * FROM web_returns WHERE sale.ws_order_number = wr_order_number)
ORDER BY orders
LIMIT 100
