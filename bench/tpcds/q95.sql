WITH split AS (
    SELECT ws1.ws_order_number
    FROM web_sales AS ws1, web_sales AS ws2
    WHERE ws1.ws_order_number = ws2.ws_order_number AND ws1.ws_warehouse_sk <> ws2.ws_warehouse_sk
)
SELECT count(DISTINCT ws_order_number) AS orders, sum(ws_ext_ship_cost) AS shipping,
    sum(ws_net_profit) AS profit
FROM web_sales AS sale, date_dim, customer_address, web_site
WHERE d_date BETWEEN DATE '1999-05-01' AND DATE '1999-05-01' + INTERVAL 60 DAYS
    AND sale.ws_ship_date_sk = d_date_sk AND sale.ws_ship_addr_sk = ca_address_sk
    AND ca_state = 'TX' AND sale.ws_web_site_sk = web_site_sk AND web_company_name = 'pri'
    AND sale.ws_order_number IN (SELECT ws_order_number FROM split)
    AND sale.ws_order_number IN (
        SELECT wr_order_number FROM web_returns, split WHERE wr_order_number = ws_order_number
    )
ORDER BY orders
LIMIT 100
